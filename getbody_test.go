package idem_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rewound is a body whose GetBody rewinds it and gives it again, as some clients'
// does.
type rewound struct {
	*countedBody
	text *strings.Reader
}

func (b rewound) Read(p []byte) (int, error) { return b.text.Read(p) }

func TestGetBodyGivesTheSameReader(t *testing.T) {
	for name, most := range map[string]int64{"in memory": 0, "longer than MaxBody": 3} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.transport.MaxBody = most
				body := &rewound{newCountedBody(""), strings.NewReader(`{"amount":1}`)}
				in := idem.Open()
				req, err := http.NewRequestWithContext(idem.WithIntent(t.Context(), in), http.MethodPost, "http://api/charges", body)
				require.NoError(t, err)
				req.ContentLength = 12
				req.GetBody = func() (io.ReadCloser, error) {
					_, err := body.text.Seek(0, io.SeekStart)
					return body, err
				}
				resp, _, err := r.send(req)
				require.NoError(t, err)
				assert.Equal(t, 201, resp.StatusCode)
				assert.Equal(t, 3, r.count())
				assert.Equal(t, `{"amount":1}`, r.all()[0].body)
				r.oneKey()
				assert.Equal(t, 1, body.closed())
			}, status(503), lost, created)
		})
	}
}
