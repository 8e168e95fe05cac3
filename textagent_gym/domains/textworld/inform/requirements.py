"""What Inform demands of the nouns of an action before it looks at the action's own rules."""

from __future__ import annotations

SECOND_CARRIED = frozenset(("locking", "unlocking", "dicing", "slicing", "chopping"))
"""Actions whose second noun must be carried."""

CARRIED = frozenset(
    ("wearing", "giving", "showing", "throwing", "drinking carried", "dicing", "slicing", "chopping", "cooking")
)
"""Actions whose noun must be carried."""

SECOND_TOUCHED = SECOND_CARRIED | {"removing", "putting", "inserting", "giving", "asking for", "tying", "cooking"}
"""Actions whose second noun must be something that can be touched, which a direction cannot."""

_TOUCHED = """
taking, removing, dropping, putting, inserting, eating, entering, getting off, searching, consulting, locking,
unlocking, switching on, switching off, opening, closing, taking off, waking, attacking, kissing, answering,
telling, asking, asking for, touching, waving, pulling, pushing, turning, pushing to, squeezing, burning,
smelling, listening, tasting, cutting, tying, drinking, swinging, rubbing, setting, buying, climbing
"""
TOUCHED = CARRIED | {" ".join(action.split()) for action in _TOUCHED.split(",")}
"""Actions whose noun must be something that can be touched."""

NEEDS_NOUN = (TOUCHED | {"going", "examining", "looking under"}) - {"answering", "telling", "asking"}
"""Actions that cannot do without a noun."""
