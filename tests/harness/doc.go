// Package harness starts the real parts that tests run against: an Apache Kafka broker, a PostgreSQL server, and the
// streamsql binary as a child process.
//
// Nothing here is a mock. The broker is Apache Kafka itself, run in KRaft combined mode from its Maven artifacts; the
// database is the PostgreSQL found on the machine. What has to be fetched is cached outside the checkout (CacheDir), and
// every server takes free ports and a directory of its own, so that test binaries may run in parallel.
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
//	func TestOrders(t *testing.T) {
//		k := harness.SharedKafka(t)             // one broker per test binary, started on first use
//		topic := k.Topic(t, 4)                  // a topic of this test's own
//		k.Produce(t, topic, "a", "b")
//		got := k.Values(t, topic, harness.Committed)
//
//		pg := harness.SharedPostgres(t)
//		dsn := pg.DSN(pg.CreateDatabase(t))
//	}
//
// Tests that kill or reconfigure a server start their own with Kafka or Postgres. With -short all of them skip, saying
// so; without it a missing java, mvn or PostgreSQL is a failure that names the packages to install.
//
// Invariant: no child outlives the test binary. Main stops the shared servers, t.Cleanup the private ones, on Linux the
// kernel kills every child when the test binary dies in whatever way, and the next run removes what a dead one left.
//
// Harness imports no package of streamsql.
package harness
