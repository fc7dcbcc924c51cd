// Keeps all that the pages load, so that they open again without a line. With one, what the server
// has goes first.

oninstall = () => skipWaiting();
onactivate = (event) => event.waitUntil(clients.claim());

onfetch = (event) => event.respondWith((async () => {
  const cache = await caches.open("kbert-try");
  try {
    const response = await fetch(event.request);
    if (response.ok) event.waitUntil(cache.put(event.request, response.clone()));
    return response;
  } catch {
    return await cache.match(event.request, { ignoreSearch: true }) ?? Response.error();
  }
})());
