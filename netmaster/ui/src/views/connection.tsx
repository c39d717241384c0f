// One connection: its ends, what decided, the way of a packet, a rule for it.
import { useState } from "preact/hooks";
import { get, words } from "../lib/api";
import { endName, ruleName, service, tone, type Decision, type End, type FlowRecord } from "../lib/flows";
import { list, model, text } from "../lib/model";
import { useCan } from "../lib/rights";
import { link } from "../lib/route";
import { Badge, count, Message, Named } from "../parts/bits";
import { Pipeline, type Trace } from "../parts/pipeline";
import { lasted, Verdict } from "./flows";

export function Connection({ record: r, back }: { record: FlowRecord | undefined; back: string }) {
  return (
    <aside class="detail" aria-label="Connection">
      <header>
        <h2>{r ? `${endName(r.src)} → ${endName(r.dst)}` : "Connection"}</h2>
        <a class="button" href={back} aria-label="Close">
          ✕
        </a>
      </header>
      {r ? <Known record={r} /> : <div><Message tone="calm">This connection is no longer among those that are shown.</Message></div>}
    </aside>
  );
}

function Known({ record: r }: { record: FlowRecord }) {
  return (
    <>
      <div>
        <p>
          <Verdict record={r} /> <span class="mono">{service(r)}</span>
        </p>
        <dl class="after">
          <dt>From</dt>
          <dd>
            <EndOf end={r.src} tenant={r.tenant} />
          </dd>
          <dt>To</dt>
          <dd>
            <EndOf end={r.dst} tenant={r.tenant} />
          </dd>
          {r.service && (
            <>
              <dt>Service</dt>
              <dd>
                {r.service.name} <span class="mono">{r.service.address}{r.service.port ? `:${r.service.port}` : ""}</span>
              </dd>
            </>
          )}
          <dt>Began</dt>
          <dd>{new Date(r.start).toLocaleString()}</dd>
          {lasted(r) && (
            <>
              <dt>Lasted</dt>
              <dd>{lasted(r)}</dd>
            </>
          )}
          {r.packets ? (
            <>
              <dt>Traffic</dt>
              <dd>
                {count(r.packets)} packets, {count(r.bytes ?? 0)} bytes
              </dd>
            </>
          ) : null}
        </dl>
      </div>
      <div>
        <h3>What decided</h3>
        <ul class="decisions">
          {(r.decisions ?? []).map((d) => (
            <Decided key={d.at + d.host + ruleName(d)} decision={d} tenant={r.tenant} />
          ))}
          {r.wouldBe && <Decided decision={r.wouldBe} tenant={r.tenant} audit />}
          {!r.decisions?.length && <li class="quiet">No host says.</li>}
        </ul>
        <NewRule record={r} />
      </div>
      <Way record={r} />
    </>
  );
}

function EndOf({ end, tenant }: { end: End; tenant: string }) {
  const of = end.tenant || tenant;
  return (
    <>
      {end.endpoint ? <a href={link(["objects", "endpoints", end.endpoint])}>{endName(end)}</a> : endName(end)} <span class="mono">{end.address}</span>
      {end.group && (
        <>
          {" "}
          in group{" "}
          <Named kind="endpointGroup" id={`${of}:${end.group}`}>
            {end.group}
          </Named>
        </>
      )}
      {end.host && <span class="quiet"> on {end.host}</span>}
    </>
  );
}

const places = { source: "at the sender", destination: "at the receiver", both: "at both ends" };

function Decided({ decision: d, tenant, audit }: { decision: Decision; tenant: string; audit?: boolean }) {
  const name = ruleName(d);
  return (
    <li>
      <Badge tone={audit ? "warn" : tone(d.verdict)}>{audit ? `would be ${d.verdict}` : d.verdict}</Badge> by{" "}
      {d.by === "rule" && d.policy ? <Named kind={d.rule ? "rule" : "policy"} id={[tenant, d.policy, d.rule].filter(Boolean).join(":")}>{name}</Named> : name}{" "}
      <span class="quiet">
        {d.by === "network-policy" && "NetworkPolicy "}
        {places[d.at]}, {d.host}
      </span>
    </li>
  );
}

// Leads to a form for a rule that decides otherwise about connections like this one.
function NewRule({ record: r }: { record: FlowRecord }) {
  const action = r.verdict === "allowed" ? "deny" : "allow";
  const tenant = r.dst.tenant || r.tenant;
  const group = model.find("endpointGroup", `${tenant}:${r.dst.group ?? ""}`);
  const ruleOf = (d: Decision) => (d.by === "rule" ? model.find("rule", `${tenant}:${d.policy}:${d.rule}`) : undefined);
  // The rule of the receiver that decided, on whichever host.
  const by = (r.decisions ?? []).findLast((d) => text(ruleOf(d), "direction") === "in");
  const policy = by?.policy ?? list(group, "policies")[0] ?? "";
  const may = useCan("create", `rule/${tenant}:${policy || "new"}:new`);
  if (!may || !r.dst.group || r.proto === "arp") return null;
  const rules = [...model.list("rule").values()].filter((x) => text(x, "policyName") === policy && text(x, "tenantName") === tenant);
  const free = 1 + Math.max(0, ...rules.map((x) => Number(text(x, "ruleId"))).filter((n) => Number.isInteger(n)));
  const port = r.proto === "tcp" || r.proto === "udp" ? String(r.dst.port ?? "") : "";
  const href = link(["objects", "rule"], {
    new: "1", "f.tenantName": tenant, "f.policyName": policy, "f.ruleId": String(free), "f.direction": "in", "f.action": action, "f.protocol": r.proto.replace("icmpv6", "icmp"), "f.port": port,
    "f.fromEndpointGroup": r.src.group ?? "", "f.fromIpAddress": r.src.group ? "" : r.src.address, "f.priority": String(by ? Math.min(100, Number(ruleOf(by)?.["priority"] || 1) + 1) : 1),
  });
  return (
    <p class="after">
      <a class="button" href={href}>
        Make a rule that {action === "allow" ? "allows" : "denies"} this
      </a>
    </p>
  );
}

// The way of a packet like those of the connection, as the switches say.
function Way({ record: r }: { record: FlowRecord }) {
  const [trace, setTrace] = useState<Trace>();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  if (!r.src.endpoint) return null;
  const ask = async () => {
    setBusy(true);
    setProblem("");
    const proto = r.proto === "icmpv6" ? "icmp" : r.proto;
    const q = new URLSearchParams({ from: r.src.endpoint ?? "", to: r.service?.address ?? r.dst.address, tenant: r.tenant, proto });
    const port = r.service?.port ?? r.dst.port;
    if (port && !r.proto.startsWith("icmp")) q.set("port", String(port));
    try {
      setTrace(await get<Trace>(`/api/v1/trace/?${q}`));
    } catch (e) {
      setProblem(words(e));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div>
      <h3>Way of a packet</h3>
      {!trace && (
        <button type="button" disabled={busy} onClick={() => void ask()}>
          {busy ? "Asking the switches …" : "Trace it now"}
        </button>
      )}
      {problem && <Message tone="bad">{problem}</Message>}
      {trace && <Pipeline trace={trace} />}
    </div>
  );
}
