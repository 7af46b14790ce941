package datagen

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// DescribePosition is a split's position for people: "row 120".
func DescribePosition(next []byte) (string, error) {
	if len(next) < 9 || next[0] != positionVersion {
		return "", errors.New("not a position of connector 'datagen'")
	}
	_, k := binary.Uvarint(next[9:])
	if k <= 0 {
		return "", errors.New("damaged position")
	}
	row, m := binary.Uvarint(next[9+k:])
	if m <= 0 {
		return "", errors.New("damaged position")
	}
	return fmt.Sprintf("row %d", row), nil
}
