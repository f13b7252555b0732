DROP TABLE notify.deliveries;
DROP TABLE notify.notices;
DROP SCHEMA notify;
