// The page of netmaster: see docs/page.md.
import "./style/base.css";
import "./style/layout.css";
import "./style/views.css";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { words } from "./lib/api";
import { useCell } from "./lib/cell";
import { forget } from "./lib/cluster";
import { model } from "./lib/model";
import { can } from "./lib/rights";
import { route } from "./lib/route";
import { kinds, loadKinds } from "./lib/schema";
import { begin, returned, session } from "./lib/session";
import "./lib/theme";
import { Message } from "./parts/bits";
import { Shell, type Place } from "./parts/shell";
import { Login } from "./views/login";
import { places } from "./views/places";

function App() {
  const s = useCell(session);
  switch (s.state) {
    case "asking":
      return <div class="wait">Asking netmaster …</div>;
    case "away":
      return <div class="wait">netmaster does not answer. Trying again …</div>;
    case "login":
      return <Login error={s.error} />;
  }
  return <Inside key={s.state === "known" ? s.who.name : ""} />;
}

// What somebody who may use the page sees.
function Inside() {
  const [problem, setProblem] = useState("");
  const [allowed, setAllowed] = useState<Place[]>();
  const known = useCell(kinds);
  useEffect(() => {
    let timer = 0;
    const load = async () => {
      try {
        await loadKinds();
        const open = session.value.state === "open";
        const may = await Promise.all(places.map((p) => (p.secured && open ? false : p.needs ? can("get", p.needs) : true)));
        setAllowed(places.filter((_, i) => may[i]));
        setProblem("");
        model.start();
      } catch (e) {
        setProblem(words(e));
        timer = window.setTimeout(() => void load(), 3000);
      }
    };
    void load();
    return () => {
      clearTimeout(timer);
      model.stop();
      kinds.set(new Map());
      forget();
    };
  }, []);
  if (problem) {
    return (
      <div class="wait">
        <Message tone="bad">{problem}</Message>
      </div>
    );
  }
  if (!allowed || known.size === 0) return <div class="wait">Loading …</div>;
  return (
    <Shell places={allowed}>
      <View places={allowed} />
    </Shell>
  );
}

function View({ places }: { places: Place[] }) {
  const name = useCell(route).path[0] ?? "overview";
  const place = places.find((p) => p.name === name);
  useEffect(() => {
    document.title = place ? `${place.title} · Contiv` : "Contiv";
    document.getElementById("main")?.scrollTo(0, 0);
  }, [place]);
  if (!place) return <div class="wait">There is no view of that name, or you may not see it.</div>;
  return <>{place.view()}</>;
}

render(<App />, document.body);
void begin(returned());
