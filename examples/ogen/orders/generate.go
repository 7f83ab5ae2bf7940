// Package orders is the client that ogen makes of the document of ../../oapi.
package orders

//go:generate go run github.com/ogen-go/ogen/cmd/ogen@v1.24.0 -config ../ogen.yaml -package orders -target . ../../oapi/orders.yaml
