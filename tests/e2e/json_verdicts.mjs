// Node's own word on JSON texts: one in base64 a line on standard input, one digit a line on standard output. 1: an
// object in good JSON and good UTF-8.
import { createInterface } from 'node:readline';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const verdicts = [];
for await (const line of createInterface({ input: process.stdin })) {
    let good = false;
    try {
        const value = JSON.parse(decoder.decode(Buffer.from(line, 'base64')));
        good = value !== null && typeof value === 'object' && !Array.isArray(value);
    } catch {
        good = false;
    }
    verdicts.push(good ? '1' : '0');
}
console.log(verdicts.join('\n'));
