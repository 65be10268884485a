-- Statements that are refused by name. A statement that leaves this list is an advance; one that must be added is not.
SELECT AVG(d1), AVG(d2), AVG(d5), AVG(d1) * 3, AVG(d1) / 3, SUM(d1) / 7, SUM(d1 / 7), AVG(d1 / 7), AVG(h), SUM(h), AVG(d3) FROM nums WHERE id > 2;
SELECT id, IF(ti > 0, ti, bu), IFNULL(ti, 'none'), COALESCE(i, d1), IF(id > 3, d1, d2), CASE WHEN id < 4 THEN ti WHEN id < 6 THEN 1.25 ELSE g END FROM ints JOIN nums USING (id) WHERE id > 2;
SELECT id FROM ints WHERE ti IN (SELECT ti FROM ints WHERE ti IS NOT NULL LIMIT 1);
SELECT FORMAT(NULL, 2);
SELECT SOUNDEX('x');
SELECT REGEXP_LIKE('abc', 'b');
SELECT 'abc' REGEXP 'b';
SELECT STR_TO_DATE('2024', '%Y-%m-%d');
SELECT CONVERT_TZ(placed, '+00:00', 'Europe/Berlin') FROM orders WHERE id = 1;
SELECT id, HEX(a), HEX(h), HEX(j), HEX(id), HEX(d), ASCII(a), ASCII(h) FROM texts WHERE id NOT IN (3, 7, 14);
SELECT id FROM times WHERE t < '-00:00:00.5' ORDER BY id;
SELECT id FROM zeros WHERE d > '2024-01-01';
SELECT YEAR(d) FROM zeros;
