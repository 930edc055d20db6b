// Whether the path that docs/operations/kubernetes.md gives KEDA means what the page says, by the library that KEDA uses.
package charts

import (
	"os"
	"regexp"
	"testing"

	"github.com/tidwall/gjson"
)

func valueLocation(t *testing.T) string {
	page, err := os.ReadFile("../../docs/operations/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`valueLocation: '(.*)'`).FindSubmatch(page)
	if found == nil {
		t.Fatal("the page gives no valueLocation")
	}
	return string(found[1])
}

func TestTheLongestWaitForConsumersIsRead(t *testing.T) {
	path := valueLocation(t)
	for _, each := range []struct{ name, answer, want string }{
		{"nobody consumes", `{"keys":[{"cause":"CAUSE_NO_CONSUMER","waitingMs":"61000"}]}`, "61000"},
		{"its turn has not come", `{"keys":[{"cause":"CAUSE_NOT_ITS_TURN","waitingMs":"1500"}]}`, "1500"},
		{"a limit holds one that waits longer", `{"keys":[{"cause":"CAUSE_THROTTLED","waitingMs":"90000"},
			{"cause":"CAUSE_NOT_ITS_TURN","waitingMs":"1500"},{"cause":"CAUSE_NO_CONSUMER","waitingMs":"20"}]}`, "1500"},
		{"only a pause and a cap hold", `{"keys":[{"cause":"CAUSE_PAUSED","waitingMs":"90000"},
			{"cause":"CAUSE_CAPPED","waitingMs":"9"},{"cause":"CAUSE_RATE_LIMITED","waitingMs":"8"}]}`, "0"},
		{"nothing waits", `{"keys":[],"waitingKeys":"0"}`, "0"},
	} {
		t.Run(each.name, func(t *testing.T) {
			if got := gjson.Get(each.answer, path); got.Type != gjson.String || got.Str != each.want {
				t.Fatalf("read %q (%s), want %q", got.String(), got.Type, each.want)
			}
		})
	}
}
