DROP TABLE warehouse.forecast;
