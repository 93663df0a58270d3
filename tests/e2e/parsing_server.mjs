// Node's own HTTP server with its defaults, which takes whatever its parser takes: the measure for test_smuggling.py.
// It says its port, and ends with its standard input. What waits for more bytes is closed after a while.
import { createServer } from 'node:http';

const waiting = { headersTimeout: 5000, requestTimeout: 5000, connectionsCheckingInterval: 500 };
const server = createServer(waiting, (request, response) => {
  request.on('end', () => response.end('taken'));
  request.resume();
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0));
process.stdin.resume();
