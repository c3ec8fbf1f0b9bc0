// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	goplugin "github.com/hashicorp/go-plugin"
)

// maxHandshake bounds go-plugin's handshake line, in bytes; with a certificate
// it has about 800.
const maxHandshake = 8 << 10

// drainStdout hands the first line on standard output over and logs the rest.
func (c *child) drainStdout(stdout *os.File, lines chan<- string) {
	r := bufio.NewReaderSize(stdout, maxHandshake)
	line, err := r.ReadSlice('\n')
	if len(line) > 0 {
		lines <- strings.TrimSpace(string(line))
	}
	close(lines)
	if err == nil || errors.Is(err, bufio.ErrBufferFull) {
		drainTo(c.output.stream("stdout"), io.Reader(r))
	}
}

// handshake waits for the first line on standard output and returns it if it is
// go-plugin's handshake and we can go on from there, else an error that says
// what the program seems to be. A program that ends closes its standard output.
func (c *child) handshake(lines <-chan string) (string, error) {
	select {
	case line, ok := <-lines:
		if !ok {
			return "", c.silent()
		}
		if c.inherits && line == inheritReady {
			return line, nil
		}
		if err := checkHandshake(line); err != nil {
			return "", fmt.Errorf("%s %w%s", c.subject(), err, c.hint())
		}
		return line, nil
	case <-c.ctx.Done():
		return "", c.late()
	}
}

// socket returns the path of the socket that the process listens on, if any.
func (c *child) socket() string {
	part := strings.Split(c.first, "|")
	if len(part) < 4 || part[2] != "unix" {
		return ""
	}
	return part[3]
}

// silent says what became of a process that closed its standard output and had
// never written to it.
func (c *child) silent() error {
	select {
	case <-c.done:
	case <-c.ctx.Done():
		return c.late()
	}
	said := ""
	if text := c.output.firstText(); text != "" {
		said = fmt.Sprintf(" after it wrote %q", text)
	}
	return fmt.Errorf("%s ended with %s%s before it was ready%s", c.subject(), c.status(), said, c.hint())
}

// late says that the time for the start is over, or that it was called off.
func (c *child) late() error {
	return fmt.Errorf("%s did not get ready in time%s: %w", c.subject(), c.hint(), c.ctx.Err())
}

// checkHandshake returns nil if line is a handshake of go-plugin that we can go
// on from, else what is wrong with the program, to stand after its name.
func checkHandshake(line string) error {
	part := strings.Split(line, "|")
	if len(part) < 5 || part[0] != strconv.Itoa(goplugin.CoreProtocolVersion) {
		// In go-plugin's words, by which people look it up.
		return fmt.Errorf("is no key manager plugin: Unrecognized remote plugin message: the first line that it printed is %q", clean(line, maxExcerpt))
	}
	version, err := strconv.Atoi(part[1])
	switch {
	case err != nil || version != ContractVersion:
		return fmt.Errorf("speaks version %q of the contract, this program version %d; use a build of it that fits", clean(part[1], maxExcerpt), ContractVersion)
	case part[2] != "unix" || part[4] != string(goplugin.ProtocolGRPC):
		return fmt.Errorf("offers %s over %s, but only grpc over unix sockets will do", clean(part[4], maxExcerpt), clean(part[2], maxExcerpt))
	case len(part) < 6 || part[5] == "":
		return errors.New("offers no certificate for mutual TLS (AutoMTLS), without which anybody could use its keys")
	}
	return nil
}

// subject is how a message begins.
func (c *child) subject() string {
	if c.exe.file == nil {
		return "this executable, run again as key process,"
	}
	return fmt.Sprintf("plugin %q", c.exe.path)
}

// hint says what is wrong most of the time.
func (c *child) hint() string {
	if c.exe.file == nil {
		return "; if this program embeds tiers, call plugin.Main first in main (or in TestMain)"
	}
	return "; a plugin's main calls plugin.Serve, a program that embeds tiers calls plugin.Main first"
}
