module github.com/idem-go/idem

go 1.26

require github.com/google/uuid v1.6.0

require github.com/stretchr/testify v1.12.1
