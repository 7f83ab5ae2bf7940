package contract

import "errors"

// FromBody returns the key that a JSON body carries under Place InBody, at the
// path Header, or "" if it carries none. Two keys that differ are an error.
func (c Contract) FromBody(body []byte) (string, error) {
	key := ""
	for _, v := range scalars(body, c.Header) {
		switch {
		case v == "", v == key:
		case key != "":
			return "", errors.New("contract: the body carries two keys")
		default:
			key = v
		}
	}
	return key, nil
}
