DROP TABLE warehouse.host_health_day;
