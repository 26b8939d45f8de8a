// `npm run lock` ends here: the lock names packages, versions and hashes. Where they come from is for each machine to
// say, so addresses go.
import { readFileSync, writeFileSync } from "node:fs";

const path = new URL("package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(path, "utf8"));
for (const one of Object.values(lock.packages)) {
  delete one.resolved;
  delete one.funding;
}
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
