// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
)

func (d *draft) setMetrics(v, from string) error {
	d.Metrics.Listen = v
	d.origins["metrics.listen"] = from
	return nil
}

func (d *draft) setAdmin(v, from string) error {
	d.Admin.Listen = v
	d.origins["admin.listen"] = from
	return nil
}

// HealthAddress returns where the tlsd that is meant says how it is: the address of
// its metrics or else of its admin listener; empty: it has neither. Where a flag gives
// one of them nothing else is read: the file may be wrong by now, and tlsd serve on.
func HealthAddress(in Input) (string, error) {
	metrics, admin := in.Flags.one("metrics"), in.Flags.one("admin")
	file := in.File()
	if metrics != "" || admin != "" {
		file = ""
	}
	d, err := newDraft(file)
	if err != nil {
		return "", err
	}
	if metrics != "" {
		_ = d.setMetrics(metrics, "flag --metrics")
	}
	if admin != "" {
		_ = d.setAdmin(admin, "flag --admin")
	}
	return cmp.Or(d.Metrics.Listen, d.Admin.Listen), d.checkWeb()
}

// checkWeb judges the addresses of metrics and admin. The latter shows and
// changes more, and asks nobody who they are: it is for this machine only.
func (d *draft) checkWeb() error {
	taken := map[string]string{}
	for i, l := range d.Listeners {
		taken[l.Listen] = fmt.Sprintf("listeners[%d]", i)
	}
	for _, web := range []struct{ key, listen string }{{"metrics", d.Metrics.Listen}, {"admin", d.Admin.Listen}} {
		if web.listen == "" {
			continue
		}
		at := web.key + ".listen"
		if err := d.checkAddress(at, web.listen); err != nil {
			return err
		}
		if by := taken[web.listen]; by != "" {
			return d.wrong(at, "%q is what %s listens on; give it an address of its own", web.listen, by)
		}
		taken[web.listen] = web.key
	}
	switch {
	case d.Admin.Listen != "" && !loopback(d.Admin.Listen):
		return d.wrong("admin.listen", "%q can be reached from other machines; write 127.0.0.1:9101 or unix:PATH (what others may see is for metrics.listen)", d.Admin.Listen)
	case d.Admin.Pprof && d.Admin.Listen == "":
		return d.wrong("admin.pprof", "is for the admin listener, and there is none; give admin.listen (or --admin)")
	}
	return nil
}
