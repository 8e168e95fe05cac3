"""Names of things that exist in no game, so that no recipe can be recalled: a material and a part."""

_MATERIALS = (
    "agate alder amber ashen azure basalt beech bitumen brass briar bronze cedar chalk cobalt copper coral cork "
    "cypress ebony elm enamel fern felt flax flint garnet gilded granite hazel hemp hickory indigo ivory jade jet "
    "juniper larch lead lilac linen loam maple marble mica moss myrtle nickel ochre olive onyx opal pearl pewter pine "
    "pumice raffia rattan resin rowan ruby russet sable saffron sage satin scarlet shale silver slate steel tallow "
    "teak thistle tin topaz umber velvet walnut wax wicker willow woven yew zinc"
)
_PARTS = (
    "anchor arch axle badge basin beam bell bellows blade bobbin bolt brace bracket brush buckle bundle button cable "
    "cage canopy casing chain charm clamp clasp cloth coil collar comb cord crank cup dial disc drum fan ferrule file "
    "fin flask fork frame funnel gasket gauge gear girder globe grate grip hammer handle hinge hook hoop horn hub jar "
    "key knob ladle lantern latch lens lever lid link loom mallet mask mesh mirror nozzle paddle panel peg pendant pin "
    "pipe piston plate plug prism pulley pump quill rack ratchet reel rim ring rivet rod roller rope rudder saddle "
    "scale screen seal shaft shell sieve sleeve socket spindle spool spring spur staff strap tile tongs tray trowel "
    "tube valve vane vessel wedge wheel whistle winch wire wreath yoke"
)
NAMES = tuple(f"{material} {part}" for material in _MATERIALS.split() for part in _PARTS.split())
"""Every name; part of what decides a task: a change needs a new version of the generator."""
