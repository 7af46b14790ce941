// Package crash kills the process at every arrow of the protocol and shows that the next run makes the output exact, for
// every two-phase sink. Jobs with every operator are killed at random. Each recovery rule, zombies and second owners have a test of their own.
package crash
