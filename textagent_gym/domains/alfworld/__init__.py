"""ALFWorld: a household robot in one room, in text."""
