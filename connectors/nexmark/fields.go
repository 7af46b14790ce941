package nexmark

import (
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// kind is a kind of event; the numbers are those of column event_type.
type kind int8

const (
	noKind    kind = -1
	aPerson   kind = 0
	anAuction kind = 1
	aBid      kind = 2
)

func kindOf(name string) kind {
	switch name {
	case persons:
		return aPerson
	case auctions:
		return anAuction
	case bids:
		return aBid
	}
	return noKind
}

// field is a field of one kind of event. Its number is part of its random numbers.
type field uint8

const (
	noField field = iota
	eventType
	eventTime // of every kind

	personID
	personName
	personEmail
	personCard
	personCity
	personState
	personExtra

	auctionID
	auctionName
	auctionDescription
	auctionInitial
	auctionReserve
	auctionExpires
	auctionSeller
	auctionCategory
	auctionExtra

	bidAuction
	bidBidder
	bidPrice
	bidChannel
	bidURL
	bidExtra
)

// spec is a field's name in the Flink connector and its type.
type spec struct {
	name  string
	field field
	typ   types.Type
}

var specs = [...][]spec{
	aPerson: {{"id", personID, types.BigIntType}, {"name", personName, types.StringType}, {"emailAddress", personEmail, types.StringType},
		{"creditCard", personCard, types.StringType}, {"city", personCity, types.StringType}, {"state", personState, types.StringType},
		{"dateTime", eventTime, types.TimestampMs}, {"extra", personExtra, types.StringType}},
	anAuction: {{"id", auctionID, types.BigIntType}, {"itemName", auctionName, types.StringType}, {"description", auctionDescription, types.StringType},
		{"initialBid", auctionInitial, types.BigIntType}, {"reserve", auctionReserve, types.BigIntType}, {"dateTime", eventTime, types.TimestampMs},
		{"expires", auctionExpires, types.TimestampMs}, {"seller", auctionSeller, types.BigIntType}, {"category", auctionCategory, types.BigIntType},
		{"extra", auctionExtra, types.StringType}},
	aBid: {{"auction", bidAuction, types.BigIntType}, {"bidder", bidBidder, types.BigIntType}, {"price", bidPrice, types.BigIntType},
		{"channel", bidChannel, types.StringType}, {"url", bidURL, types.StringType}, {"dateTime", eventTime, types.TimestampMs},
		{"extra", bidExtra, types.StringType}},
}

// norm makes names comparable: emailAddress, email_address and EMAILADDRESS are one.
func norm(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// find is the field of events of kind k called name.
func (k kind) find(t *catalog.Table, name string, typ types.Type) (field, error) {
	want := norm(name)
	if want == "customtime" { // the name in some versions of the benchmark's tables
		want = "datetime"
	}
	var names []string
	for _, s := range specs[k] {
		if norm(s.name) == want {
			return s.field, fits(t, name, typ, s.typ)
		}
		names = append(names, s.name)
	}
	return noField, diag.New(diag.Semantic, t.Options.Pos("connector"), "table %s: %ss of the connector 'nexmark' have no field %s",
		t.Name, [...]string{persons, auctions, bids}[k], name).WithHint("the fields are %s", strings.Join(names, ", "))
}

// fits checks the declared type of a field. Texts may be of any length, times of precision 3 to 6.
func fits(t *catalog.Table, name string, typ, want types.Type) error {
	ok := typ.Kind == want.Kind && typ.Phys() == want.Phys()
	switch want.Kind {
	case types.Varchar:
		ok = typ.Kind == types.Varchar && typ.Precision == types.MaxLength
	case types.Timestamp:
		ok = ok && typ.Precision >= 3
	}
	if ok {
		return nil
	}
	return diag.New(diag.Semantic, t.Options.Pos("connector"), "table %s: field %s of the connector 'nexmark' is declared as %s", t.Name, name, typ).
		WithHint("declare it as %s", want.WithNull(true))
}
