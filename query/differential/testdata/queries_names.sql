SELECT 1 FROM DUAL;
SELECT 1 FROM dual WHERE 1 = 1;
SELECT 1 LIMIT 0;
SELECT id FROM tree ORDER BY id LIMIT 18446744073709551615 OFFSET 2;
SELECT DISTINCTROW name FROM tree WHERE name = 'leaf';
SELECT HIGH_PRIORITY SQL_SMALL_RESULT id FROM tree WHERE id = 1;
SELECT id 'x y', id AS `a``b`, id AS "q", id `select`, id AS été FROM tree WHERE id = 1;
SELECT COUNT( * ), Count(*), count(* ) , COUNT(/* all */ *) FROM tree;
SELECT +1, (+2), + 'x', -id, +id, - id, !id, NOT id, id+1, id + 1, (id)+(1), ( id ), ((id + 1)) FROM tree WHERE id = 1;
SELECT 'it''s', "a""b", 'a\nb', '', 'a' 'b' 'c', _utf8mb4'x', N'y', x'41', 0x4142, 1., .5, 1E2, 1e-2, 00012, 1.10;
SELECT 'lead', ' trail ', '  ', 'tab	x';
SELECT id /* one */ , id -- two
, id # three
 FROM tree WHERE id = 1;
SELECT
  id,
  name
FROM
  tree
WHERE id = 1;
SELECT CASE WHEN id=1 THEN 'x' END, IF(id>1,  'a','b'), id IN (1,2), id BETWEEN 0 AND 5, name LIKE 'r%', NOT(id=1) FROM tree WHERE id = 1;
SELECT t.id, t.name AS t, tree.* FROM tree t JOIN tree ON tree.id = t.id WHERE t.id = 1;
SELECT T.id FROM tree T WHERE T.ID = 1;
SELECT t.id FROM tree T WHERE t.id = 1;
SELECT id, id, ID FROM tree WHERE id = 1;
SELECT * FROM (SELECT id, id FROM tree) x;
SELECT x.`id + 1` FROM (SELECT id + 1 FROM tree) x ORDER BY 1;
WITH x (a, b) AS (SELECT id, name FROM tree), y AS (SELECT a FROM x WHERE a > 2) SELECT y.a, x.b FROM x JOIN y ON x.a = y.a ORDER BY 1;
WITH x AS (SELECT 1 n) SELECT * FROM x, x AS y, (WITH x AS (SELECT 2 m) SELECT * FROM x) z;
SELECT EXISTS(SELECT 1 FROM tree), (SELECT MAX(id) FROM tree), 1 IN (SELECT id FROM tree);
SELECT date'2024-01-01', TIMESTAMP'2024-01-01 00:00:00', INTERVAL 1 DAY + date'2024-01-01', date '2024-01-01' + interval 1 day;
SELECT cast(id as char(5)), CONVERT(id, SIGNED), convert(name using utf8mb4), BINARY name, name COLLATE utf8mb4_bin FROM tree WHERE id = 1;
SELECT extract(year from '2024-01-02'), substring('abc' from 2 for 1), trim(leading 'a' from 'abc'), position('b' in 'abc'), date_add('2024-01-01', interval 1 day), CURRENT_DATE = CURDATE();
SELECT group_concat(distinct id order by id separator '-'), sum(distinct id), count(distinct id, name) FROM tree;
SELECT row_number() over (order by id) AS rn, sum(id) over w FROM tree WINDOW w AS (ORDER BY id) ORDER BY rn;
SELECT TRUE, true, FALSE, NULL, null, Null, 1=1, 1 IS NULL;
SELECT * FROM tree t1 NATURAL JOIN tree t2 WHERE t1.id < 3 ORDER BY id;
SELECT * FROM tree a JOIN tree b USING (id, name) WHERE id < 3 ORDER BY id;
SELECT a.name, b.name FROM tree a LEFT JOIN tree b ON b.id = a.parent AND b.name <> 'root' ORDER BY a.id;
SELECT nothing.*, tree.id FROM tree LEFT JOIN nothing ON nothing.id = tree.id ORDER BY tree.id;
SELECT nope.* FROM tree;
SELECT tree.nope FROM tree;
SELECT id FROM tree WHERE name = 'leaf' GROUP BY nope;
SELECT id FROM tree HAVING nope > 1;
SELECT name n, COUNT(*) c FROM tree GROUP BY n HAVING c > 1 AND n = 'LEAF' ORDER BY c;
SELECT parent p FROM tree GROUP BY p ORDER BY p;
SELECT parent FROM tree GROUP BY parent ORDER BY MAX(id) DESC;
SELECT parent, MAX(id) m FROM tree GROUP BY parent ORDER BY m + 0 DESC;
SELECT parent, COUNT(*) FROM tree GROUP BY parent HAVING parent > 1 ORDER BY parent;
SELECT parent, COUNT(*) FROM tree GROUP BY parent HAVING name = 'x';
SELECT MAX(id) FROM tree HAVING MAX(id) > 100;
SELECT 1 WHERE 1 = 0;
SELECT id FROM tree UNION SELECT 99 ORDER BY id DESC LIMIT 2;
SELECT id AS a FROM tree UNION SELECT parent FROM tree ORDER BY a;
SELECT id FROM tree UNION SELECT id FROM nope;
SELECT 'a' AS x UNION ALL SELECT 'bcd' UNION ALL SELECT NULL;
SELECT 1 AS n UNION SELECT 1.5 UNION SELECT NULL ORDER BY n;
