"""Late facts: which days they touch, and the sensor that has these restated and no other."""
