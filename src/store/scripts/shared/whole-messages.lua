-- The most bytes of records that a script copies or frees, except for the first record: the server does nothing else meanwhile.
local MOST_BYTES = 8388608
-- The most bytes of records in one entry of the change stream.
local MOST_RECORDED_BYTES = 1048576
local bytesHandled = 0

-- Whether the record of one more message would be too much for this script, which then ends before it.
local function isTooMuch(messages, id, most)
  local size = redis.call('HSTRLEN', messages, id)
  if bytesHandled > 0 and bytesHandled + size > most then return true end
  bytesHandled = bytesHandled + size
  return false
end
