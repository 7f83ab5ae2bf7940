// Package orders is the client that oapi-codegen makes of orders.yaml.
package orders

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config ../oapi-codegen.yaml ../orders.yaml
