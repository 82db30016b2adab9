-- What is known of a message's failed attempts, and of how far its consumer was. A history so long that no script has written it is not read; nil where its key is of
-- another type.
local function historyOf(failures, id)
  local size = redis.pcall('HSTRLEN', failures, id)
  if type(size) == 'table' then return nil end
  return size > 0 and size <= 65536 and redis.call('HGET', failures, id) or ''
end
