// Package network puts a proxy that breaks connections between a running job and its broker and database, and looks at what readers see.
package network
