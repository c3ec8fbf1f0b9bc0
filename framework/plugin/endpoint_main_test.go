// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// endpointMarker makes this program an endpoint for the test tier, as the JSON
// in it says.
const endpointMarker = "TLSD_TEST_ENDPOINT"

type endpointSetup struct {
	Socket  string
	Users   []int
	Sources []keymanager.Source
	Trust   []TrustFile
}

// mainEndpoint is the main of an endpoint.
func mainEndpoint(setup string) int {
	var s endpointSetup
	if err := json.Unmarshal([]byte(setup), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	log, err := logging.New(logging.Config{Format: logging.FormatJSON, Output: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	e, err := ServeEndpoint(ctx, testTier(), Spec{Sources: s.Sources}, EndpointOptions{
		Socket: s.Socket, Users: s.Users, Trust: s.Trust, Log: log,
	})
	if err == nil {
		err = e.Serve(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	return 0
}
