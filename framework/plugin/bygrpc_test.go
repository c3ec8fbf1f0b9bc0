// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import "testing"

// TestFaultsByGRPC does to key processes without lanes, as those in other
// languages are, what the tests named do to those with lanes.
func TestFaultsByGRPC(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"works":              TestHostSelectsSignsListsAndReloads,
		"passes_errors_on":   TestHostPassesErrorsOnAsTheyAre,
		"killed":             TestKilledProcessIsReplacedAndItsKeysSign,
		"killed_under_calls": TestCallersNoticeNoDeath,
		"gone_for_long":      TestCallsFailAfterPluginWait,
		"stopped":            TestProcessThatIsStoppedIsReplaced,
		"hangs":              TestProcessWhoseCallsNeverEndIsReplaced,
		"one_call_late":      TestOneLateCallIsNoHang,
		"hanging_calls":      TestCallsThatHangBoundTheirKindOnly,
		"closed_under_calls": TestCloseDuringCallsHangsNobody,
		"grandchild":         TestGrandchildThatHoldsThePipesHidesNoDeath,
	} {
		t.Run(name, test)
	}
}

func TestByGRPCOnlyMeansNoLanes(t *testing.T) {
	t.Run("lanes", func(t *testing.T) {
		if !startHost(t, "").slot.Load().about.GetLanes() {
			t.Error("a key process of this package has no lanes")
		}
	})
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Args = []string{byGRPCOnly} })
	if h.slot.Load().about.GetLanes() {
		t.Error("it has lanes all the same")
	}
	h.mustSign(t, mustSelect(t, h.Host).Key)
}
