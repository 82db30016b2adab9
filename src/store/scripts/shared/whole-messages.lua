-- A script copies or frees records of so many bytes, but the first, however large it is: the server does nothing else meanwhile.
local MOST_BYTES = 8388608
-- What goes into the change stream is in one entry.
local MOST_RECORDED_BYTES = 1048576
local bytesHandled = 0

-- Whether the record of one more message is too much for this script, which ends before it then.
local function isTooMuch(messages, id, most)
  local size = redis.call('HSTRLEN', messages, id)
  if bytesHandled > 0 and bytesHandled + size > most then return true end
  bytesHandled = bytesHandled + size
  return false
end
