-- The history of a message's failed attempts, and its progress. A history longer than scripts write is not read; nil if its key is of
-- another type.
local function historyOf(failures, id)
  local size = redis.pcall('HSTRLEN', failures, id)
  if type(size) == 'table' then return nil end
  return size > 0 and size <= 65536 and redis.call('HGET', failures, id) or ''
end
