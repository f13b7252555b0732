DROP VIEW warehouse.waste_period;
DROP TABLE warehouse.waste_day;
