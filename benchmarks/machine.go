package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// A machine is where it was measured, and what.
type machine struct {
	Go, OS, CPU string
	Cores       int
	Before      string // load average; empty: not known
	After       string
	Versions    []string // of the clients
}

func thisMachine() machine {
	return machine{
		Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, CPU: processor(),
		Cores: runtime.GOMAXPROCS(0), Before: load(), Versions: versions(),
	}
}

// processor returns the model's name, if the system tells it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor not known"
	}
	name := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(info)
	if name == nil {
		return "processor not known"
	}
	return string(name[1])
}

// load returns the load average of the last minute, if the system tells it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// versions returns the clients' modules as they are built in.
func versions() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	clients := []string{
		"github.com/hashicorp/go-retryablehttp", "github.com/failsafe-go/failsafe-go", "github.com/PuerkitoBio/rehttp",
		"github.com/gojek/heimdall/v7", "github.com/go-resty/resty/v2", "resty.dev/v3",
		"github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/aws/aws-sdk-go-v2",
		"github.com/stripe/stripe-go/v85", "github.com/openai/openai-go/v3",
	}
	var list []string
	for _, m := range info.Deps {
		if slices.Contains(clients, m.Path) {
			list = append(list, fmt.Sprintf("%s %s", m.Path, m.Version))
		}
	}
	return list
}
