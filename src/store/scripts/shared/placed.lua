-- Whether a message is in a schedule or in flight. A record in neither is what is left of a message when another program, or an eviction,
-- has deleted its place: no poll ever finds it. A key of another type may have the message.
local function isPlaced(due, inFlight, id)
  for _, schedule in ipairs(due) do
    if redis.pcall('ZSCORE', schedule, id) then return true end
  end
  for priority = 0, #due - 1 do
    if redis.pcall('ZSCORE', inFlight, (priority == 10 and 'g' or priority) .. id) then return true end
  end
  return false
end
