// Package tests holds the tests that belong to no single folder: the shape of the house (arch_test.go) and the end-to-end
// suites. It may import anything; nothing imports it.
package tests
