"""Pure decisions: no clock, no dice, no input or output. Whoever calls hands them the time and the chance."""
