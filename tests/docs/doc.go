// Package docs runs what the pages of docs/sql show, and checks what they say about the tests. It may import anything;
// nothing imports it.
package docs
