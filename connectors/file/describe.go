package file

import "fmt"

// DescribePosition is a split's position for people: "byte 120 of 4096, record 3".
func DescribePosition(next []byte) (string, error) {
	p, err := decodePosition(next)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("byte %d of %d, record %d", p.offset, p.size, p.record), nil
}
