// Makes dist of src: one script, one style sheet, and the files that stay as they are.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";

await rm("dist", { recursive: true, force: true });
await mkdir("dist");
const { metafile } = await build({
  entryPoints: { app: "src/main.tsx" },
  outdir: "dist",
  bundle: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  legalComments: "inline",
  charset: "utf8",
  logLevel: "warning",
  metafile: true,
});
for (const name of ["index.html", "icon.svg"]) {
  await copyFile(`src/${name}`, `dist/${name}`);
}

// What the script contains of others, with their licences.
const names = new Set(Object.keys(metafile.inputs).map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]).filter(Boolean));
const packages = [];
for (const name of [...names].sort()) {
  const folder = `node_modules/${name}`;
  const { version } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
  const file = (await readdir(folder)).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  if (!file) throw new Error(`${name} ${version} has no licence, so it cannot be in the page`);
  packages.push({ name, version, license: await readFile(`${folder}/${file}`, "utf8") });
}
await writeFile("dist/licenses.json", JSON.stringify(packages, null, 2) + "\n");
