package main

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

var errMalformed = errors.New("the broker's reply is no message of fila.v1")

// eachField calls visit with every field of an encoded message. value is set for length-delimited fields,
// number for varints.
func eachField(message []byte, visit func(field protowire.Number, value []byte, number uint64) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		var value []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		if err := visit(field, value, number); err != nil {
			return err
		}
	}
	return nil
}

// answer is what an EnqueueStreamResponse says.
type answer struct {
	sequence uint64
	stored   int
	refused  int
}

func scanAnswer(reply []byte) (answer, error) {
	var found answer
	err := eachField(reply, func(field protowire.Number, value []byte, number uint64) error {
		switch field {
		case 1:
			found.sequence = number
		case 2:
			refused := false
			err := eachField(value, func(field protowire.Number, _ []byte, _ uint64) error {
				refused = refused || field == 3
				return nil
			})
			if refused {
				found.refused++
			} else {
				found.stored++
			}
			return err
		}
		return nil
	})
	return found, err
}

// sessionFrame is what a ConsumeSessionResponse says, of deliveries and settlements.
type sessionFrame struct {
	delivered    int
	packedLeases []byte
	stamps       []int64

	settled  bool
	sequence uint64
	failures int
}

// scanSession reads a frame into found, whose slices are used again.
func scanSession(reply []byte, found *sessionFrame) error {
	*found = sessionFrame{packedLeases: found.packedLeases[:0], stamps: found.stamps[:0]}
	return eachField(reply, func(field protowire.Number, value []byte, _ uint64) error {
		switch field {
		case 2:
			return eachField(value, func(_ protowire.Number, message []byte, _ uint64) error {
				found.delivered++
				return scanMessage(message, found)
			})
		case 3:
			found.settled = true
			return eachField(value, func(field protowire.Number, _ []byte, number uint64) error {
				switch field {
				case 1:
					found.sequence = number
				case 2:
					found.failures++
				}
				return nil
			})
		}
		return nil
	})
}

func scanMessage(message []byte, found *sessionFrame) error {
	return eachField(message, func(field protowire.Number, value []byte, _ uint64) error {
		switch field {
		case 3:
			if at, ok := readStamp(value); ok {
				found.stamps = append(found.stamps, at)
			}
		case 4:
			return eachField(value, func(field protowire.Number, _ []byte, number uint64) error {
				if field == 7 {
					found.packedLeases = protowire.AppendVarint(found.packedLeases, number)
				}
				return nil
			})
		}
		return nil
	})
}
