package arch

// Tables of exceptions, each with its reason. A rule that needs many is a bad rule.

// variables lists package variables that are neither sentinel errors nor patterns.
var variables = map[string]string{
	"internal/kit/testkit.update":        "a flag of tests, which must be known before they begin",
	"internal/run/cluster/chain.modes":   "how messages are written and read, made once: it does not change",
	"internal/run/cluster/chain.items":   "the types of entries, by their number: a function would make the table for every message",
	"internal/ask/provider.capabilities": "what models refuse, made once: every call asks for it",
	"internal/ask/price.embeddedOnce":    "the table of prices, parsed once: it never changes, and every dispatcher asks for it",
}

// shows lists exported names that show a type of a package under internal/: "package.Name".
var shows = map[string]string{}

// contextValues lists the files that put values into contexts: "file function".
var contextValues = map[string]string{
	"llm/llm.go OnBegan":                             "tells a model behind any llm.Model that somebody waits for the beginning of its answer",
	"internal/serve/gateway/upstream.go withFlight":  "a client's call as it came: llm.Request has no room for another format's bytes",
	"internal/ask/credential/google.go searchGoogle": "golang.org/x/oauth2 takes its HTTP client from the context only",
}

// modules lists what the project depends on directly, with its licence. A new one
// is a decision: the licence must go together with Apache-2.0.
var modules = map[string]string{
	"github.com/alecthomas/kong":                            "MIT",
	"github.com/expr-lang/expr":                             "MIT",
	"github.com/aws/aws-sdk-go-v2":                          "Apache-2.0",
	"github.com/aws/aws-sdk-go-v2/config":                   "Apache-2.0",
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream": "Apache-2.0",
	"github.com/BurntSushi/toml":                            "MIT",
	"github.com/goccy/go-yaml":                              "MIT",
	"github.com/santhosh-tekuri/jsonschema/v6":              "Apache-2.0",
	"go.uber.org/goleak":                                    "MIT",
	"pgregory.net/rapid":                                    "MPL-2.0", // in tests only
	"golang.org/x/oauth2":                                   "BSD-3-Clause",
	"golang.org/x/sys":                                      "BSD-3-Clause",
	"golang.org/x/term":                                     "BSD-3-Clause",
	"gonum.org/v1/gonum":                                    "BSD-3-Clause",
	"github.com/fxamacker/cbor/v2":                          "MIT",
	"github.com/klauspost/compress":                         "BSD-3-Clause",
	"github.com/microcosm-cc/bluemonday":                    "BSD-3-Clause",
	"github.com/nats-io/nats-server/v2":                     "Apache-2.0",
	"github.com/nats-io/nats.go":                            "Apache-2.0",
	"github.com/parquet-go/parquet-go":                      "Apache-2.0",
	"github.com/coder/websocket":                            "ISC",
	"github.com/yuin/goldmark":                              "MIT",
	"github.com/zeebo/xxh3":                                 "BSD-2-Clause",
	"zombiezen.com/go/sqlite":                               "ISC",
}

// closed lists what worlds import although no module outside can.
var closed = map[string]string{
	"internal/kit/auth":   "who may use a server is decided in one place for all of Parley's servers, and that is not ready to be promised",
	"internal/kit/health": "environment servers go down and come back as model servers do",
	"internal/kit/queue":  "those who wait for a server are served in the order in which the engine serves episodes",
	"internal/kit/sse":    "there is one reader of server-sent events, and MCP servers send them too",
}

// ordinary lists kinds whose name is also an ordinary word.
var ordinary = map[string]string{
	"secrets": "keys are secrets too",
	"task":    "benchmarks, models and other programs speak of tasks",
}

// theirs lists names of other programs' formats that have the name of a kind in them.
var theirs = map[string]string{
	`"rollout_id"`:        "slime's Sample has it",
	`"rollout_log_probs"`: "slime's Sample has it",
}

// plain lists names that contain a word of unclearRE but are clear.
var plain = map[string]string{}

// renamed lists imports of our packages under another name: "file alias".
var renamed = map[string]string{
	"cmd/parley/task_kill_linux_test.go kit":    "the tests of the program have a type process",
	"test/oracle/bench/proxy.go parley":         "the program measures several gateways, and its function gateway is one of the measurements",
	"test/oracle/request_test.go ours":          "the vendor's package has the same name",
	"test/oracle/request_test.go wireopenai":    "the vendor's package has the same name",
	"test/oracle/request_test.go wireanthropic": "the vendor's package has the same name",
}
