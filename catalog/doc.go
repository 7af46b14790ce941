// Package catalog holds the objects a statement can name: tables, views and user functions, with typed columns and the
// options the user wrote. It is persisted as the user's own CREATE text in one file, replaced atomically; temporary
// objects shadow permanent ones and are never written.
//
// It imports sql and its leaves.
package catalog
