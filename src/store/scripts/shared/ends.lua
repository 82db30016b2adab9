-- Publishes the ids of messages that were completed, are dead letters now or are gone, for those who wait for the end of one, where the
-- queue keeps completed messages: a line for each. The channel has the name of the key of the messages with another part. Without the
-- right to publish nothing else changes: who waits looks again with each sweep.
local ESCAPES = {['\\'] = '\\\\', ['\n'] = '\\n'}
local function publishEnds(messages, ids)
  if not ids or #ids == 0 then return end
  local lines = {}
  for n, id in ipairs(ids) do lines[n] = string.gsub(id, '[\\\n]', ESCAPES) end
  redis.pcall('PUBLISH', string.gsub(messages, ':messages:', ':ends:', 1), table.concat(lines, '\n'))
end
