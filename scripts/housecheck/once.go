package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// What is written once, and used everywhere else.
const (
	useSignal   = "use utils/signal instead of a channel that is closed and made again"
	useRetry    = "use utils/retry instead of doubling a wait: all hosts would come back in step"
	useSafeList = "use netlinksafe.%s instead of netlink.%s: an interrupted dump is no answer"
	useListSafe = "call netlink.%s in netx.ListSafely: an interrupted dump is no answer"
)

const netlinkPath = "github.com/vishvananda/netlink"

// dumps are the functions of package netlink that list what the kernel has, which a change
// interrupts, and that package netlinksafe has as well.
var dumps = []string{
	"AddrList", "BridgeVlanList", "ConntrackDeleteFilters", "FilterList", "LinkByName", "LinkGetProtinfo", "LinkList",
	"QdiscList", "RouteList", "RouteListFiltered", "RuleList", "RuleListFiltered",
}

// otherDumps are those that it does not have.
var otherDumps = []string{"ConntrackTableList", "NeighList", "NeighListExecute", "NeighProxyList"}

// checkOnce looks for what has been written by hand that is somewhere already.
func (s *source) checkOnce() {
	safely := map[ast.Node]bool{} // calls inside netx.ListSafely
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			s.checkBroadcast(n.List)
		case *ast.CaseClause:
			s.checkBroadcast(n.Body)
		case *ast.CommClause:
			s.checkBroadcast(n.Body)
		case *ast.AssignStmt:
			s.checkDoubling(n)
		case *ast.CallExpr:
			s.checkDump(n, safely)
		}
		return true
	})
}

// checkBroadcast looks for a channel that is closed and then made again.
func (s *source) checkBroadcast(body []ast.Stmt) {
	for i := 1; i < len(body); i++ {
		before, ok := body[i-1].(*ast.ExprStmt)
		if !ok {
			continue
		}
		closing, ok := before.X.(*ast.CallExpr)
		if !ok || !isNamed(closing.Fun, "close") || len(closing.Args) != 1 {
			continue
		}
		made, ok := body[i].(*ast.AssignStmt)
		if !ok || len(made.Lhs) != 1 || len(made.Rhs) != 1 || types.ExprString(made.Lhs[0]) != types.ExprString(closing.Args[0]) {
			continue
		}
		if call, ok := made.Rhs[0].(*ast.CallExpr); ok && isNamed(call.Fun, "make") {
			s.add(before.Pos(), useSignal)
		}
	}
}

// checkDoubling looks for x = min(2*x, …), also with something added.
func (s *source) checkDoubling(a *ast.AssignStmt) {
	for i, right := range a.Rhs {
		call, ok := right.(*ast.CallExpr)
		if !ok || !isNamed(call.Fun, "min") || i >= len(a.Lhs) {
			continue
		}
		left := types.ExprString(a.Lhs[i])
		ast.Inspect(call, func(n ast.Node) bool {
			product, ok := n.(*ast.BinaryExpr)
			if ok && product.Op == token.MUL && slices.Contains([]string{types.ExprString(product.X), types.ExprString(product.Y)}, left) {
				s.add(a.Pos(), useRetry)
				return false
			}
			return true
		})
	}
}

// checkDump looks for lists of the kernel's that a change can interrupt.
func (s *source) checkDump(call *ast.CallExpr, safely map[ast.Node]bool) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	pkg, ok := f.X.(*ast.Ident)
	if !ok {
		return
	}
	switch path := s.imports[pkg.Name]; {
	case path == module+"/utils/netx" && f.Sel.Name == "ListSafely":
		ast.Inspect(call, func(n ast.Node) bool {
			safely[n] = true
			return true
		})
	case path != netlinkPath:
	case slices.Contains(dumps, f.Sel.Name):
		s.add(call.Pos(), useSafeList, f.Sel.Name, f.Sel.Name)
	case slices.Contains(otherDumps, f.Sel.Name) && !safely[call]:
		s.add(call.Pos(), useListSafe, f.Sel.Name)
	}
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
