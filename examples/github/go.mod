module github.com/idem-go/idem/examples/github

go 1.26

replace github.com/idem-go/idem => ../..

require (
	github.com/google/go-github/v89 v89.0.0
	github.com/idem-go/idem v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/google/go-querystring v1.2.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
