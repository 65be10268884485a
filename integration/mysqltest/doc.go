// Package mysqltest gives tests, the demo and the benchmarks a real MySQL server and MySQL's own client programs.
//
// A server is had in the first of these ways that works on the machine:
//
//  1. external: TIDEMARK_TEST_MYSQL=user:password@host:port names a running server. Tests that need
//     options of their own, or stop and kill the server, are skipped there. The account needs all privileges.
//  2. testcontainers: a Docker engine answers. The image is the one TIDEMARK_TEST_MYSQL_IMAGE names; else mysql:8.4, or,
//     where only that is present, the image that `make mysql-image` built. An image that can't be had is a note in the
//     log, and the next way is tried.
//  3. path: a mysqld on the PATH that is MySQL's. MariaDB is no stand-in and is passed over.
//  4. debian: the machine's own Debian mirror, from which the packages mysql-server-core and mysql-client-core and
//     their libraries are fetched into the user's cache folder and unpacked there. The system is left untouched: apt
//     works on lists, caches and a package status of its own, and the programs run under their own dynamic loader.
//
// TIDEMARK_TEST_MYSQL_WAY=external|testcontainers|path|debian allows one way only; when it fails, the test fails.
// This package's own test of the containers runs wherever an engine answers, whichever way the other tests take, and
// with TIDEMARK_TEST_CONTAINERS=required, as CI has it, fails elsewhere.
//
// Everything kept between runs (packages, an initialized empty data directory) is under TIDEMARK_TEST_CACHE, by default
// the folder tidemark in the user's cache folder. It may be deleted at any time when no test runs.
//
// Servers listen on 127.0.0.1 only. They end with the test that asked for them; when the test process itself dies,
// the kernel kills a local server with it, and a container left behind is removed by the next run.
package mysqltest
