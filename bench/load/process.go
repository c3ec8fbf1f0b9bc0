// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// ready is the line that a load process writes when its callers are prepared.
const ready = "ready"

// Serve is a load process: it reads a Job from in, writes a line when it is
// ready, waits for one, and writes the Result.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("load: read job: %w", err)
	}
	var j Job
	if err := json.Unmarshal(line, &j); err != nil {
		return fmt.Errorf("load: read job: %w", err)
	}
	result, err := Run(ctx, j, func() error {
		fmt.Fprintln(out, ready)
		_, err := lines.ReadBytes('\n')
		return err
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

// Start runs j in a process of its own, which cmd is: one that calls Serve with
// its standard streams. It calls begin when the first handshake is about to be
// made, and returns when the last one has ended.
func Start(cmd *exec.Cmd, j Job, begin func() error) (Result, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return Result{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Result{}, err
	}
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	result, err := converse(in, bufio.NewReader(out), j, begin)
	in.Close()
	if werr := cmd.Wait(); werr != nil {
		return Result{}, fmt.Errorf("load process: %w: %s", werr, strings.TrimSpace(stderr.String()))
	}
	return result, err
}

func converse(in io.Writer, out *bufio.Reader, j Job, begin func() error) (r Result, err error) {
	if err := json.NewEncoder(in).Encode(j); err != nil {
		return r, err
	}
	if line, err := out.ReadString('\n'); err != nil || strings.TrimSpace(line) != ready {
		return r, errors.Join(fmt.Errorf("load process said %q", line), err)
	}
	if err := begin(); err != nil {
		return r, err
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		return r, err
	}
	return r, json.NewDecoder(out).Decode(&r)
}
