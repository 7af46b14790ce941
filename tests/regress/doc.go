// Package regress holds one small case for each fault that a user met or could have met, on the public package: what is
// written into the engine, and what must come back. A case names what went wrong before.
package regress
