-- The shop of the demo, with few rows, and tables of edge values.
CREATE TABLE customers (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  name VARCHAR(80) NOT NULL,
  email VARCHAR(120) CHARACTER SET latin1 NOT NULL,
  country CHAR(2) NOT NULL,
  segment ENUM('consumer', 'business', 'public') NOT NULL,
  birthday DATE,
  registered DATETIME(3) NOT NULL,
  preferences JSON,
  KEY (country)
);
CREATE TABLE products (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  sku VARCHAR(16) CHARACTER SET ascii NOT NULL,
  title VARCHAR(120) NOT NULL,
  category VARCHAR(40) NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  weight DOUBLE,
  labels SET('new', 'sale', 'bulky', 'fragile') NOT NULL,
  stock INT NOT NULL,
  UNIQUE KEY (sku)
);
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  customer_id INT UNSIGNED NOT NULL,
  status ENUM('placed', 'paid', 'shipped', 'returned') NOT NULL,
  placed TIMESTAMP(6) NOT NULL,
  total DECIMAL(12,2) NOT NULL,
  note VARCHAR(200),
  KEY (customer_id), KEY (placed)
);
CREATE TABLE order_items (
  order_id BIGINT UNSIGNED NOT NULL,
  line SMALLINT UNSIGNED NOT NULL,
  product_id INT UNSIGNED NOT NULL,
  quantity INT NOT NULL,
  price DECIMAL(10,2) NOT NULL,
  PRIMARY KEY (order_id, line),
  KEY (product_id)
);
CREATE TABLE ints (
  id INT NOT NULL PRIMARY KEY,
  ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, su SMALLINT UNSIGNED, mi MEDIUMINT, mu MEDIUMINT UNSIGNED,
  i INT, u INT UNSIGNED, bi BIGINT, bu BIGINT UNSIGNED, b1 BIT(1), b8 BIT(8), b64 BIT(64), y YEAR, z INT(6) UNSIGNED ZEROFILL, nn INT NOT NULL
);
CREATE TABLE nums (
  id INT NOT NULL PRIMARY KEY,
  d1 DECIMAL(5,2), d2 DECIMAL(18,6), d3 DECIMAL(38,10), d4 DECIMAL(65,30), d5 DECIMAL(10,0) UNSIGNED, f FLOAT, g DOUBLE, h DOUBLE NOT NULL
);
CREATE TABLE texts (
  id INT NOT NULL PRIMARY KEY,
  a VARCHAR(40), b VARCHAR(40) COLLATE utf8mb4_general_ci, c VARCHAR(40) COLLATE utf8mb4_bin, d VARCHAR(40) CHARACTER SET latin1,
  e CHAR(10) COLLATE utf8mb4_unicode_ci, f TEXT, g VARCHAR(40) COLLATE utf8mb4_0900_bin, h VARBINARY(40), j BINARY(4), k BLOB,
  en ENUM('b', 'a', 'C', ''), se SET('x', 'y', 'z'), js JSON
);
CREATE TABLE times (
  id INT NOT NULL PRIMARY KEY,
  d DATE, dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL, t TIME, t6 TIME(6), y YEAR
);
CREATE TABLE zeros (
  id INT NOT NULL PRIMARY KEY,
  d DATE, dt DATETIME, plain INT
);
CREATE TABLE nothing (
  id INT NOT NULL PRIMARY KEY,
  v INT, s VARCHAR(10), d DECIMAL(10,2)
);
CREATE TABLE tree (
  id INT NOT NULL PRIMARY KEY,
  parent INT, name VARCHAR(20) NOT NULL
);

CREATE TABLE fixed (
  id INT NOT NULL PRIMARY KEY, c CHAR(4) COLLATE utf8mb4_bin, d CHAR(4) CHARACTER SET latin1 COLLATE latin1_bin, v VARCHAR(6) COLLATE utf8mb4_bin
);
