// Package upload sends a large file in one write that can be repeated. The file
// is not read into memory: every attempt reads it again from where it stood.
package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/idem-go/idem"
)

// Upload sends file to url, from where it stands to its end, once for each
// Intent. It closes file, as http.Client does with what it sends.
//
// AttemptTimeout does not cut a long upload: its clock starts anew with every
// read of the file. ctx bounds the whole.
func Upload(ctx context.Context, client *idem.Client, upload *idem.Intent, url string, file *os.File) (idem.Result, error) {
	req, err := request(ctx, url, file)
	if err != nil {
		return idem.Result{Outcome: idem.NotExecuted}, errors.Join(err, file.Close())
	}
	resp, err := client.Do(upload, req)
	if e, ok := errors.AsType[*idem.Error](err); ok {
		return e.Result, err
	}
	defer func() { _ = resp.Body.Close() }()
	res := idem.ResultOf(resp)
	if resp.StatusCode/100 != 2 {
		return res, fmt.Errorf("upload: the server answered %s; outcome: %v", resp.Status, res.Outcome)
	}
	return res, nil
}

func request(ctx context.Context, url string, file *os.File) (*http.Request, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	from, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, file)
	if err != nil {
		return nil, err
	}
	// net/http does not ask a file for its length, and would send it in chunks.
	req.ContentLength = info.Size() - from
	req.Header.Set("Content-Type", "application/octet-stream")
	return req, nil
}
