// A question as people type it, for the search: an option's dashes don't exclude it, words that
// every page has don't decide, and a page must have each Chinese character that is asked for. The
// search would read "-x" as "not x", and "a" as all that begins so.
const OFTEN = /(?<=^|\s)(a|an|and|are|can|do|does|for|how|i|in|is|it|my|of|on|or|the|to|what|where|which|why|with)(?=\s|$)/gi;
const QUERY = 2; // the kind of message in which the page sends what was typed
const post = Worker.prototype.postMessage;

Worker.prototype.postMessage = function (message, ...rest) {
  if (message.type !== QUERY) return post.call(this, message, ...rest);
  const typed = message.data.replace(/(^|\s)-+(?=\w)/g, "$1");
  const telling = typed.replace(OFTEN, "").replace(/[\u4e00-\u9fff]/g, " +$& ").trim();
  return post.call(this, { ...message, data: telling || typed }, ...rest);
};
