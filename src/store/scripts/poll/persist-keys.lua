-- A step of reliable-poll.lua: removes the expiry that another program has given to keys of the queue, because it would delete later
-- messages. A key without an expiry is not written. Without the right the first refusal ends the step.
local function persistKeys(keys, schedules, others)
  for _, list in ipairs({keys, schedules, others}) do
    for _, key in ipairs(list) do
      if type(redis.pcall('PERSIST', key)) == 'table' then return end
    end
  end
end
